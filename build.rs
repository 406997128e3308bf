//! Link arguments of a Node-API addon, and the place where napi writes down what it exports: scripts/native-types.mjs.

fn main() {
    napi_build::setup();
    let folder = std::env::var("OUT_DIR").expect("cargo sets it");
    println!("cargo::rustc-env=NAPI_TYPE_DEF_TMP_FOLDER={folder}");
}
