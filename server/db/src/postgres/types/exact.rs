//! Types whose text says everything about a value.

use tokio_postgres::types::{Kind, Type};

/// True if two values of the type that the output function writes alike are the same value, with
/// the settings of the feed's session (`extra_float_digits`).
///
/// Only PostgreSQL's own types are known. Counterexamples: `regproc`, which writes two functions of
/// one name alike; `xml`, which leaves out the encoding that the document declares; `tsquery`,
/// which leaves out brackets; a type of an extension, whose function may round.
pub(crate) fn has_exact_text(type_oid: u32) -> bool {
    Type::from_oid(type_oid).is_some_and(|of| is_exact(&of))
}

fn is_exact(of: &Type) -> bool {
    match of.kind() {
        Kind::Array(element) | Kind::Range(element) => is_exact(element),
        Kind::Simple => EXACT.contains(of),
        _ => false,
    }
}

const EXACT: [Type; 29] = [
    Type::BIT,
    Type::BOOL,
    Type::BPCHAR,
    Type::BYTEA,
    Type::CIDR,
    Type::DATE,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::INET,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::INTERVAL,
    Type::JSON,
    Type::JSONB,
    Type::MACADDR,
    Type::MACADDR8,
    Type::NAME,
    Type::NUMERIC,
    Type::OID,
    Type::TEXT,
    Type::TIME,
    Type::TIMESTAMP,
    Type::TIMESTAMPTZ,
    Type::TIMETZ,
    Type::TS_VECTOR,
    Type::UUID,
    Type::VARBIT,
    Type::VARCHAR,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_that_are_known_are_exact() {
        for exact in [
            Type::INT4,
            Type::TEXT_ARRAY,
            Type::TSTZ_RANGE,
            Type::NUMERIC,
        ] {
            assert!(has_exact_text(exact.oid()), "{exact}");
        }
        for other in [
            Type::REGPROC,
            Type::REGPROC_ARRAY,
            Type::XML,
            Type::TSQUERY,
            Type::RECORD,
        ] {
            assert!(!has_exact_text(other.oid()), "{other}");
        }
        assert!(!has_exact_text(16_384));
    }
}
