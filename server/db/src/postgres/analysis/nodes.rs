//! Reads the trees that PostgreSQL writes of its own queries (`pg_node_tree`).
//!
//! It is the form that `nodes/outfuncs.c` writes and `nodes/readfuncs.c` reads: `{NAME :field value
//! …}`, `(list)`, `<>` for nothing, tokens with backslashes, and constants as `length [ bytes ]`.
//! Fields are found by name, not by place, so that what a later version adds does no harm here; the
//! code that walks a tree refuses unknown names.

/// Nesting beyond this is refused. PostgreSQL itself allows a few thousand levels.
const MAX_DEPTH: usize = 400;

/// One value of a tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TreeNode {
    /// `<>`
    Nothing,
    /// A number, a flag, a word or a text, without its quotes and backslashes.
    Token(String),
    List(Vec<TreeNode>),
    Object(Object),
    /// The bytes of a constant, as they lie in the server's memory.
    Datum(Vec<u8>),
}

/// `{NAME :field value …}`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) fields: Vec<(String, TreeNode)>,
}

impl Object {
    pub(crate) fn get(&self, field: &str) -> &TreeNode {
        self.fields
            .iter()
            .find(|(name, _)| name == field)
            .map_or(&TreeNode::Nothing, |(_, value)| value)
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, field: &str) -> Option<T> {
        self.get(field).token()?.parse().ok()
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(name, _)| name == field)
    }

    /// A field that is a flag, and is not set. False for a field that is not there.
    pub(crate) fn denies(&self, field: &str) -> bool {
        self.get(field).token() == Some("false")
    }

    /// A field that is a flag, and is set.
    pub(crate) fn is(&self, field: &str) -> bool {
        self.get(field).token() == Some("true")
    }
}

impl TreeNode {
    pub(crate) fn token(&self) -> Option<&str> {
        match self {
            Self::Token(token) => Some(token),
            _ => None,
        }
    }

    pub(crate) fn object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// True if an object of this kind is in it.
    pub(crate) fn contains(&self, is: &dyn Fn(&Object) -> bool) -> bool {
        match self {
            Self::List(items) => items.iter().any(|item| item.contains(is)),
            Self::Object(object) => {
                is(object) || object.fields.iter().any(|(_, value)| value.contains(is))
            }
            _ => false,
        }
    }

    /// The items of a list; none for anything else.
    pub(crate) fn items(&self) -> &[TreeNode] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }
}

/// Reads one tree; `None` if it is not in the form that is known.
pub(crate) fn parse(text: &str) -> Option<TreeNode> {
    let mut reader = Reader { text, depth: 0 };
    let node = reader.value()?;
    reader.next().is_none().then_some(node)
}

struct Reader<'a> {
    text: &'a str,
    depth: usize,
}

/// One token with its backslashes: a bracket, or everything up to a space or a bracket.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches([' ', '\n', '\t']);
    let first = text.chars().next()?;
    if matches!(first, '(' | ')' | '{' | '}') {
        return Some(text.split_at(1));
    }
    let mut escaped = false;
    let end = text
        .char_indices()
        .find(|(_, letter)| {
            let ends = !escaped && matches!(letter, ' ' | '\n' | '\t' | '(' | ')' | '{' | '}');
            escaped = !escaped && *letter == '\\';
            ends
        })
        .map_or(text.len(), |(index, _)| index);
    Some(text.split_at(end))
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (token, rest) = split(self.text)?;
        self.text = rest;
        Some(token)
    }

    fn peek(&self) -> Option<&'a str> {
        split(self.text).map(|(token, _)| token)
    }

    fn value(&mut self) -> Option<TreeNode> {
        let token = self.next()?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let node = match token {
            "{" => TreeNode::Object(self.fields()?),
            "(" => {
                let mut items = Vec::new();
                while self.peek()? != ")" {
                    items.push(self.value()?);
                }
                self.next();
                TreeNode::List(items)
            }
            ")" | "}" => return None,
            "<>" => TreeNode::Nothing,
            token => TreeNode::Token(unescape(token)),
        };
        self.depth -= 1;
        Some(node)
    }

    fn fields(&mut self) -> Option<Object> {
        let name = self.next()?.to_owned();
        let mut fields = Vec::new();
        loop {
            match self.next()? {
                "}" => return Some(Object { name, fields }),
                label => {
                    let field = label.strip_prefix(':')?.to_owned();
                    // The first value may begin with a colon itself: an alias may.
                    let value = self.value()?;
                    let value = if self.peek()? == "[" {
                        self.datum()?
                    } else {
                        value
                    };
                    fields.push((field, value));
                }
            }
        }
    }

    fn datum(&mut self) -> Option<TreeNode> {
        self.next();
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                "]" => return Some(TreeNode::Datum(bytes)),
                // `char` is signed on some machines and not on others.
                byte => bytes.push(byte.parse::<i16>().ok()?.to_le_bytes()[0]),
            }
        }
    }
}

/// A text without its quotes and backslashes.
fn unescape(token: &str) -> String {
    let inner = token
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(token);
    let mut plain = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' {
            letters.next()
        } else {
            Some(letter)
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let tree = parse(r#"({A :name :b\ c :list (i 1 2) :none <> :const 4 [ 7 0 -1 0 ] :inner {B :flag true} :empty "" :names ("x\)" "y")})"#).unwrap();
        let [TreeNode::Object(a)] = tree.items() else {
            panic!("{tree:?}");
        };
        assert_eq!(a.get("name").token(), Some(":b c"));
        assert_eq!(a.get("list").items().len(), 3);
        assert_eq!(a.get("none"), &TreeNode::Nothing);
        assert_eq!(a.get("const"), &TreeNode::Datum(vec![7, 0, 255, 0]));
        assert!(a.get("inner").object().unwrap().is("flag"));
        assert_eq!(a.get("empty").token(), Some(""));
        assert_eq!(a.get("names").items()[0].token(), Some("x)"));
        assert_eq!(a.get("missing"), &TreeNode::Nothing);
    }

    #[test]
    fn what_is_not_a_tree_is_refused() {
        for text in [
            "",
            "{",
            "{A :b",
            "(",
            ")",
            "{A b}",
            "{A :b 4 [ x ]}",
            "() ()",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let deep = "(".repeat(MAX_DEPTH + 1) + &")".repeat(MAX_DEPTH + 1);
        assert_eq!(parse(&deep), None);
    }
}
