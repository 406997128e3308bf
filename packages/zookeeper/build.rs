//! Link arguments of a Node-API addon.

fn main() {
    napi_build::setup();
    // Where napi writes down what it exports: scripts/native-types.mjs.
    let folder = std::env::var("OUT_DIR").expect("cargo sets it");
    println!("cargo::rustc-env=NAPI_TYPE_DEF_TMP_FOLDER={folder}");
}
