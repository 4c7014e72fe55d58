//! Operators of PostgreSQL whose meaning is known. The oids are in `pg_operator.dat`, and the same
//! in every version.

use crate::postgres::catalog::types;
use crate::precision::ValueClass;

pub(super) fn equality(operator: u32) -> Option<ValueClass> {
    match operator {
        // Each of int2, int4 and int8 with each.
        94 | 532 | 1862 | 533 | 96 | 15 | 1868 | 416 | 410 => Some(ValueClass::Integer),
        98 => Some(ValueClass::Text),
        2972 => Some(ValueClass::Uuid),
        91 => Some(ValueClass::Boolean),
        _ => None,
    }
}

/// `=` of `name`, float4, float8, `char(n)`, date, time, timestamptz, numeric, bytea, timestamp and
/// enums.
pub(super) const OTHERS: [u32; 11] = [93, 620, 670, 1054, 1093, 1108, 1320, 1752, 1955, 2060, 3516];

/// True if the operator is `=` of a common type.
pub(super) fn is_equality(operator: u32) -> bool {
    equality(operator).is_some() || OTHERS.contains(&operator)
}

/// True if an operand of the class may have values of this type.
pub(super) fn takes(class: ValueClass, type_oid: u32) -> bool {
    match class {
        ValueClass::Integer => matches!(type_oid, types::INT2 | types::INT4 | types::INT8),
        ValueClass::Text | ValueClass::Folded => {
            matches!(type_oid, types::TEXT | types::VARCHAR)
        }
        ValueClass::Uuid => type_oid == types::UUID,
        ValueClass::Boolean => type_oid == types::BOOL,
    }
}
