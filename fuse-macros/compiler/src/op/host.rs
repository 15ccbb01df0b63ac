//! What runs on the host: values in and out of graphs.

use super::ParamKind::{Device, Dims};
use super::{Call, Class, Gradient, OpInfo, param};
use crate::types::Ty;

const READ: OpInfo =
    OpInfo { class: Class::Host, infer: |_, _, _| Ok(vec![]), gradient: Gradient::Undefined, ..OpInfo::BASE };

const UPLOAD: OpInfo = OpInfo {
    call: Call::Function,
    class: Class::Host,
    params: &[param("shape", Dims), param("device", Device)],
    infer: |_, _, attrs| Ok(vec![Ty::new(attrs[1].dtype(), attrs[0].dims())]),
    gradient: Gradient::Zero,
    ..OpInfo::BASE
};

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo { name: "item", doc: "The value of a tensor of one element, on the host", ..READ },
    OpInfo { name: "to_vec", doc: "The elements in row-major order, on the host", ..READ },
    OpInfo { name: "from_vec", doc: "A tensor of the elements of a `Vec` in row-major order", ..UPLOAD },
    OpInfo { name: "from_slice", doc: "A tensor of the elements of a slice in row-major order", ..UPLOAD },
    OpInfo {
        name: "to_device",
        doc: "A copy of the tensor on a device",
        class: Class::Host,
        params: &[param("device", Device)],
        gradient: Gradient::Undefined,
        ..OpInfo::BASE
    },
];
