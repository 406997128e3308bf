//! Which boot of the machine this is. What a process wrote to a memory map outlives the process, but
//! not the machine: a map can be trusted within the boot that wrote it.

/// The ID of this boot, as the kernel gives it. None where it gives none: then no map is trusted.
#[cfg(target_os = "linux")]
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// The ID of this boot, as the kernel gives it. None where it gives none: then no map is trusted.
#[cfg(target_os = "macos")]
pub fn boot_id() -> Option<String> {
    let mut id = [0u8; 64];
    let mut len = id.len();
    // SAFETY: the name is a C string, `id` has room for `len` bytes, and nothing is set.
    let status = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            id.as_mut_ptr().cast(),
            &mut len,
            std::ptr::null_mut(),
            0,
        )
    };
    let id = std::ffi::CStr::from_bytes_until_nul(&id).ok()?.to_str().ok()?;
    (status == 0 && !id.is_empty()).then(|| id.to_owned())
}

/// The ID of this boot. This system gives none: then no map is trusted.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn boot_id() -> Option<String> {
    None
}

#[cfg(all(test, any(target_os = "linux", target_os = "macos")))]
mod tests {
    #[test]
    fn one_boot_has_one_id() {
        let id = super::boot_id().unwrap();
        assert_eq!(id.len(), 36);
        assert_eq!(super::boot_id(), Some(id));
    }
}
