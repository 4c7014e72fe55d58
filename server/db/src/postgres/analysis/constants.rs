//! What a column is compared with.

use super::columns::bare;
use super::nodes::{Object, TreeNode};
use crate::Value;
use crate::postgres::catalog::types;
use crate::precision::{CaseFold, Operand};

/// Returns a parameter or a constant, without any conversion but those that [`bare`] takes off, and
/// its type.
pub(crate) fn operand(node: &TreeNode) -> Option<(Operand, u32)> {
    let object = bare(node)?;
    match object.name.as_str() {
        "PARAM" => {
            let (index, type_oid) = parameter(object)?;
            Some((Operand::Parameter(index), type_oid))
        }
        "CONST" => {
            let type_oid = object.number("consttype")?;
            Some((Operand::Constant(constant(object, type_oid)?), type_oid))
        }
        _ => None,
    }
}

/// Returns the right side of `= ANY`, a list of values or a parameter that is an array, with the
/// types of the values.
pub(crate) fn operands(node: &TreeNode) -> Option<Vec<(Operand, u32)>> {
    let object = bare(node)?;
    match object.name.as_str() {
        "ARRAY" | "ARRAYEXPR" if !object.is("multidims") => {
            object.get("elements").items().iter().map(operand).collect()
        }
        "PARAM" => {
            let (index, array) = parameter(object)?;
            let type_oid = match array {
                1000 => types::BOOL,
                1005 => types::INT2,
                1007 => types::INT4,
                1016 => types::INT8,
                1009 => types::TEXT,
                1015 => types::VARCHAR,
                2951 => types::UUID,
                _ => return None,
            };
            Some(vec![(Operand::Items(index), type_oid)])
        }
        _ => None,
    }
}

/// Returns `x` of `lower(x)` and `upper(x)`.
pub(super) fn argument_without_case(node: &TreeNode) -> Option<(CaseFold, &TreeNode)> {
    let call = bare(node).filter(|object| object.name == "FUNCEXPR")?;
    let [argument] = call.get("args").items() else {
        return None;
    };
    // `lower(text)` and `upper(text)`; the numbers are in `pg_proc.dat`.
    match call.number("funcid")? {
        870 => Some((CaseFold::Lower, argument)),
        871 => Some((CaseFold::Upper, argument)),
        _ => None,
    }
}

/// A parameter's index from 0, and its type.
fn parameter(object: &Object) -> Option<(usize, u32)> {
    const EXTERNAL: u32 = 0;
    if object.number("paramkind") != Some(EXTERNAL) {
        return None;
    }
    let number: usize = object.number("paramid")?;
    Some((number.checked_sub(1)?, object.number("paramtype")?))
}

/// True if the tree's constants lie in memory as they do here: the lowest byte first. `probe` is
/// the constant 1.
pub(crate) fn are_readable(probe: &Object) -> bool {
    constant(probe, types::INT4) == Some(Value::Integer(1))
}

/// A constant's value, if it is of a type whose form in memory is known.
fn constant(object: &Object, type_oid: u32) -> Option<Value> {
    if object.is("constisnull") {
        return Some(Value::Null);
    }
    let TreeNode::Datum(bytes) = object.get("constvalue") else {
        return None;
    };
    match type_oid {
        types::BOOL => Some(Value::Boolean(*bytes.first()? != 0)),
        types::INT2 => Some(Value::Integer(
            i16::from_le_bytes(bytes.get(..2)?.try_into().ok()?).into(),
        )),
        types::INT4 => Some(Value::Integer(
            i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?).into(),
        )),
        types::INT8 => Some(Value::Integer(i64::from_le_bytes(
            bytes.get(..8)?.try_into().ok()?,
        ))),
        types::UUID => uuid(bytes),
        types::TEXT | types::VARCHAR => text(bytes),
        _ => None,
    }
}

/// A text has four bytes before it with its length; the lowest two bits are of compressed and short
/// forms. Other letters than ASCII are in the database's encoding, which need not be that of
/// parameters and of the feed.
fn text(bytes: &[u8]) -> Option<Value> {
    let (header, content) = bytes.split_at_checked(4)?;
    let header = u32::from_le_bytes(header.try_into().ok()?);
    let plain =
        header & 3 == 0 && usize::try_from(header >> 2).ok()? == bytes.len() && content.is_ascii();
    plain.then(|| std::str::from_utf8(content).ok().map(Value::from))?
}

fn uuid(bytes: &[u8]) -> Option<Value> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    Some(digits.as_str().into())
}
