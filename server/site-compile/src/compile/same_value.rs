//! Whether a column that a statement returns can only have the value of the parameter of its name:
//! `update item set … where id = :id returning id`. What is not seen to be so is taken for another
//! value.

use millpond_db::sql::{Dialect, Lexer, TokenKind};

/// True if every row that the statement gives has the parameter in the column: its condition says
/// so, or the row is inserted with it.
pub(super) fn is_same_value(sql: &str, dialect: Dialect, column: &str) -> bool {
    let sql = sql.to_lowercase();
    let column = &*column.to_lowercase();
    let param = &*format!(":{column}");
    let tokens = tokens(&sql, dialect, column);
    if tokens.first() == Some(&"insert") {
        let is_renamed = tokens.windows(2).any(|pair| pair == ["as", column]);
        let is_set = sets_otherwise(&tokens, column, param);
        return inserts(&tokens, column, param) && !is_renamed && !is_set;
    }
    // What stands in parentheses says nothing of the rows themselves.
    let tokens = outside_parentheses(&tokens);
    let Some(at) = tokens.iter().position(|token| *token == "where") else {
        return false;
    };
    let (head, condition) = tokens.split_at(at);
    let has = |words: &[&str], tokens: &[&str]| tokens.iter().any(|token| words.contains(token));
    let is_renamed = tokens.windows(2).any(|pair| pair == ["as", column]);
    let is_denied = condition.windows(3).any(|three| {
        three[0] == "not" && (three[1] == "(" || three[1] == column || three[2] == ".")
    });
    if is_renamed || is_denied || has(&["or", "case", "union", "except", "intersect"], condition) {
        return false;
    }
    match head.first() {
        Some(&"select") if has(&["join", ","], after("from", head)) => {
            compares_in_one_table(head, condition, column, param)
        }
        Some(&"select" | &"delete") if has(&["using"], head) => false,
        Some(&"select" | &"delete") => compared(condition, column, param).is_some(),
        Some(&"update") if !has(&["from"], head) => {
            compared(condition, column, param).is_some() && !sets_otherwise(head, column, param)
        }
        _ => false,
    }
}

/// Returns the tokens behind the first of these words.
fn after<'t, 's>(word: &str, tokens: &'t [&'s str]) -> &'t [&'s str] {
    let at = tokens.iter().position(|token| *token == word);
    at.map_or(&[][..], |at| &tokens[at + 1..])
}

/// True if a query of several tables selects the column from the one in which it compares it.
fn compares_in_one_table(head: &[&str], condition: &[&str], column: &str, param: &str) -> bool {
    let Some(Some(table)) = compared(condition, column, param) else {
        return false;
    };
    let end = head.iter().position(|token| *token == "from");
    let list = &head[..end.unwrap_or(0)];
    let mut places = list.iter().enumerate();
    let of_table = |at: usize| at >= 2 && list[at - 2..at] == [table, "."];
    list.contains(&column) && places.all(|(at, token)| *token != column || of_table(at))
}

/// The table, if it is written, of a column that a condition compares with the parameter.
fn compared<'s>(condition: &[&'s str], column: &str, param: &str) -> Option<Option<&'s str>> {
    const AFTER: [&str; 7] = ["returning", "order", "limit", "group", "having", "for", ";"];
    let end = condition.iter().position(|token| AFTER.contains(token));
    let condition = condition.get(1..end.unwrap_or(condition.len()))?;
    let mut parts = condition.split(|token| *token == "and");
    parts.find_map(|part| match part {
        [name, "=", value] | [value, "=", name] if *name == column && *value == param => Some(None),
        [table, ".", name, "=", value] | [value, "=", table, ".", name]
            if *name == column && *value == param =>
        {
            Some(Some(*table))
        }
        _ => None,
    })
}

/// The tokens at the outermost level, with the opening parenthesis of what is left out.
fn outside_parentheses<'s>(tokens: &[&'s str]) -> Vec<&'s str> {
    let mut depth = 0_usize;
    let mut outside = Vec::new();
    for token in tokens {
        if depth == 0 {
            outside.push(*token);
        }
        match *token {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    outside
}

/// True if something else than the parameter stands behind `column =`.
fn sets_otherwise(tokens: &[&str], column: &str, param: &str) -> bool {
    let mut places = tokens.windows(2).enumerate();
    places.any(|(at, pair)| {
        let value = tokens.get(at + 2..).unwrap_or_default();
        // What is computed with the parameter is another value.
        let is_param = value.first() == Some(&param) && is_end(value.get(1).copied());
        pair == [column, "="] && !is_param
    })
}

/// True if a value ends in front of a token.
fn is_end(token: Option<&str>) -> bool {
    token.is_none_or(|token| {
        let is_word = token.starts_with(|c: char| c.is_alphabetic());
        is_word && token != "collate" || matches!(token, "," | ")" | ";")
    })
}

/// True if one row is inserted with the parameter in the column: `insert into t (id, …) values
/// (:id, …)`.
fn inserts(tokens: &[&str], column: &str, param: &str) -> bool {
    let Some(columns) = list(tokens) else {
        return false;
    };
    let place = columns.iter().position(|item| *item == [column]);
    let mut after = tokens
        .iter()
        .position(|token| *token == "values")
        .map_or(&[][..], |at| &tokens[at + 1..]);
    let values = list(after);
    let Some((place, values)) = place.zip(values) else {
        return false;
    };
    let length: usize = values.iter().map(|item| item.len() + 1).sum();
    after = after.get(length + 1..).unwrap_or_default();
    let is_one_row = after.first() != Some(&",");
    is_one_row && values.get(place).is_some_and(|item| *item == [param])
}

/// The items of the first list in parentheses.
fn list<'t, 's>(tokens: &'t [&'s str]) -> Option<Vec<&'t [&'s str]>> {
    let start = tokens.iter().position(|token| *token == "(")? + 1;
    let mut depth = 0;
    let mut begin = start;
    let mut items = Vec::new();
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match *token {
            "(" => depth += 1,
            ")" if depth == 0 => {
                items.push(&tokens[begin..at]);
                return Some(items);
            }
            ")" => depth -= 1,
            "," if depth == 0 => {
                items.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// The tokens without comments. A name in quotes loses them if it is the column; another one keeps
/// them, so that it is taken for no keyword.
fn tokens<'s>(sql: &'s str, dialect: Dialect, column: &'s str) -> Vec<&'s str> {
    let tokens = Lexer::new(sql, dialect).filter(|token| !token.is_blank());
    let texts = tokens.map(|token| match token.kind {
        TokenKind::Name if token.content() == column => column,
        _ => token.text,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_the_parameter_where_it_can_be_nothing_else() {
        for sql in [
            "update item set name = :name where id = :id returning id, name",
            "update item as i set \"name\" = :name\nwhere i.id = :id and owner = :claims.user returning id",
            "delete from item where :id = id returning id",
            "select id, name from item where item.id = :id -- or not",
            "select id from item where id = :id and not is_hidden and deleted is not null",
            "select o.id, c.name from orders o join customer c on c.id = o.customer_id where o.id = :id",
            "update orders set total = (select sum(price) from line where order_id = :id) where id = :id returning id",
            "select id, case when a or b then 1 end from a where id = :id and (a or b)",
            "insert into item (id, name) values (:id, trim(:name)) returning id",
            "insert into item (name, id) values (coalesce(:name, ''), :id) on conflict (id) do update set name = excluded.name returning id",
        ] {
            for dialect in [Dialect::Sqlite, Dialect::Postgres] {
                assert!(is_same_value(sql, dialect, "id"), "{sql}");
            }
        }
        for sql in [
            "insert into b (a_id) values (:id) returning id",
            "insert into b (a_id, id) values (:id, 7) returning id",
            "insert into b (id) values (:id), (2) returning id",
            "insert into b (id) select :id from c returning id",
            "select b.id from b join a on a.id = :id",
            "select b.id from a, b where a.id = :id",
            "select id from a where id = :id or true",
            "select id from a where not id = :id",
            "select id from a where not (id = :id)",
            "select id from a where id = :id + 1",
            "select id from a where 1 + id = :id",
            "select * from a join b on b.a = a.id where a.id = :id",
            "select a.id, b.id from a join b on b.a = a.id where a.id = :id",
            "select b.id from a left join b on b.id = :id where a.id = 1",
            "select other as id from a where id = :id",
            "select id from a where a = ':id' and 'id = :id' = ''",
            "update a set id = id + 1 where id = :id returning id",
            "update a set id = :id + 1 where true returning id",
            "update a set b = :id where id > :id returning id",
            "update a set b = 1 where id in (select id from c where id = :id) returning id",
            "delete from a using c where c.id = :id returning id",
            "with x as (select 1) update a set b = 1 where id = :id returning id",
            "select id from a where \"where\" = 1 or id = :id",
            "delete from a where \"b\" = $$ or id = $$ and id > :id returning id",
            "(",
            "insert into",
            "insert into a values",
            "'",
            "/*",
            "--",
            ":",
        ] {
            for dialect in [Dialect::Sqlite, Dialect::Postgres] {
                assert!(!is_same_value(sql, dialect, "id"), "{sql}");
            }
        }
    }
}
