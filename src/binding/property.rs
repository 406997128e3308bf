//! Properties of objects for JavaScript.

use napi::bindgen_prelude::{JsObjectValue, Object, ToNapiValue};
use napi::{Env, Property, PropertyAttributes};

/// Defines a property of an object's own. To set it would ask a setter on `Object.prototype`.
pub fn define<V: ToNapiValue>(
    env: &Env,
    object: &mut Object,
    name: &str,
    value: V,
    attributes: PropertyAttributes,
) -> napi::Result<()> {
    let property = Property::new().with_utf8_name(name)?.with_napi_value(env, value)?;
    object.define_properties(&[property.with_property_attributes(attributes)])
}
