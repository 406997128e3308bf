//! Link arguments of a Node-API addon; nothing for the core alone.

fn main() {
    if std::env::var_os("CARGO_FEATURE_BINDING").is_some() {
        napi_build::setup();
    }
}
