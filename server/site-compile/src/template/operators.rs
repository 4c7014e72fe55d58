//! Operators of templates that never fail: `{{ row.n + 1 }}` with a null prints nothing.
//!
//! The engine has one meaning of `+`, which is an error for null. So it is given each template with
//! calls of filters in the place of operators: `(row.n)|__add(1)`. A filter binds more tightly than
//! any operator, so no brackets are needed around the call, and a sum of many parts is not nested.
//! What was put in stands between form feeds, so that errors have the places and texts of the
//! owner's file ([`written`]).

use std::ops::Range;

use minijinja::{
    Error,
    machinery::{
        self, Span, Token,
        ast::{BinOp, BinOpKind, Expr, Slice, UnaryOpKind},
    },
};

use super::{
    file_of,
    syntax::{visit_loops, visit_stmt},
    syntax_config,
};
use crate::filters::operators::{BINARY, BOUND, EACH, NEG, NOT_IN, SLICED, STEP};
use millpond_site_format::Problem;

/// Mark before and behind all texts that are put in.
const MARK: char = '\u{c}';

/// Text that is put in.
#[derive(Clone, Copy, Debug)]
enum InsertedText {
    /// Begins the first value of an operator.
    First,
    /// Ends the second one.
    Close,
    /// Begins a value of which a filter is called.
    Open,
    /// Ends a value, of which this filter is called.
    Filter(&'static str),
    /// In the place of an operator: what is before it goes to this filter, with what follows.
    Operator(&'static str),
    /// In the place of an operator behind another, whose call needs no brackets.
    NextOperator(&'static str),
    /// In the place of `in` behind `not`.
    Blank,
    /// In the place of a minus sign: begins its value.
    Minus,
}

impl InsertedText {
    fn text(self) -> String {
        match self {
            Self::First => "(".to_owned(),
            Self::Close => ")".to_owned(),
            Self::Open => "((".to_owned(),
            Self::Filter(name) => format!(")|{name})"),
            Self::Operator(name) => format!(")|{name}("),
            Self::NextOperator(name) => format!("|{name}("),
            Self::Blank => " ".to_owned(),
            Self::Minus => "( (".to_owned(),
        }
    }

    /// Returns the owner's text in the place of such a text.
    fn written(text: &str) -> &'static str {
        match text {
            " " => "in",
            "( (" => "-",
            _ => match text
                .trim_start_matches(')')
                .strip_prefix('|')
                .and_then(|text| text.strip_suffix('('))
            {
                Some(NOT_IN) => "not",
                Some(name) => BINARY
                    .iter()
                    .find(|(_, known)| *known == name)
                    .map_or("", |(sign, _)| sign),
                None => "",
            },
        }
    }
}

struct Edit {
    at: Range<usize>,
    /// Edits at one place stand in this order.
    rank: (u8, isize),
    piece: InsertedText,
}

/// The template for the engine. One that does not parse stays as it is.
pub fn rewritten(name: &str, source: &str) -> String {
    // It would be taken for a mark. To browsers it is a blank as any other.
    let source = source.replace(MARK, " ");
    let parsed = machinery::parse(&source, name, syntax_config());
    let tokens = machinery::tokenize(&source, false, syntax_config()).collect::<Result<_, _>>();
    let (Ok(root), Ok(tokens)) = (parsed, tokens) else {
        return source;
    };
    let mut edits = Edits {
        tokens,
        edits: Vec::new(),
    };
    visit_loops(&root, &mut |each| edits.call(&each.iter, EACH));
    visit_stmt(&root, &mut |expr| edits.expr(expr));
    let mut edits = edits.edits;
    edits.sort_by_key(|edit| (edit.at.start, edit.rank));
    let mut text = String::with_capacity(source.len() + edits.len() * 12);
    let mut copied = 0;
    for edit in edits {
        text.push_str(&source[copied..edit.at.start]);
        text.push(MARK);
        text.push_str(&edit.piece.text());
        text.push(MARK);
        copied = edit.at.end;
    }
    text.push_str(&source[copied..]);
    text
}

/// The text as the owner has written it, and where a place of the given text is in it.
pub fn written(given: &str, place: usize) -> (String, usize) {
    let mut text = String::with_capacity(given.len());
    let (mut at, mut found) = (0, None);
    for (number, part) in given.split(MARK).enumerate() {
        let part_written = match number % 2 {
            0 => part,
            _ => InsertedText::written(part),
        };
        let end = at + part.len();
        if found.is_none() && place <= end {
            let within = place.saturating_sub(at).min(part_written.len());
            // A place that begins with what was put in is that of what follows.
            found = (number % 2 == 0 && place < end).then_some(text.len() + within);
        }
        text.push_str(part_written);
        at = end + MARK.len_utf8();
    }
    let end = text.len();
    (text, found.unwrap_or(end))
}

/// The problem of a template that the engine takes as its owner has written it, and not as it is
/// [rewritten]: operators within brackets stand a level deeper then, and the engine reads 150
/// levels.
pub(super) fn too_deep(name: &str, error: &Error) -> Option<Problem> {
    let detail = error.detail().unwrap_or_default();
    if !detail.contains("recursion") {
        return None;
    }
    let message = "an expression has operators within too many brackets";
    let problem = Problem::new(file_of(name), message);
    let problem = match error.line() {
        Some(line) => problem.at(line, 1),
        None => problem,
    };
    Some(problem.hint("give parts of it names with {% set part = … %}"))
}

struct Edits<'s> {
    tokens: Vec<(Token<'s>, Span)>,
    edits: Vec<Edit>,
}

impl<'s> Edits<'s> {
    fn expr(&mut self, expr: &Expr<'s>) {
        match expr {
            Expr::BinOp(op) => self.binary(op, expr),
            Expr::UnaryOp(op) if matches!(op.op, UnaryOpKind::Neg) => {
                let (start, end) = range(op.span());
                self.replace(start..start + 1, InsertedText::Minus);
                self.close(end, InsertedText::Filter(NEG));
            }
            Expr::Slice(slice) => self.slice(slice, expr),
            _ => {}
        }
    }

    fn binary(&mut self, op: &BinOp<'s>, expr: &Expr<'s>) {
        let follows = match &op.left {
            Expr::BinOp(left) => {
                let is_bare = self.token_behind(&op.left) == self.first_token_behind(&op.left);
                is_bare && self.signs(left, InsertedText::Operator).is_some()
            }
            _ => false,
        };
        let operator = match follows {
            true => InsertedText::NextOperator,
            false => InsertedText::Operator,
        };
        let Some(replaced) = self.signs(op, operator) else {
            return;
        };
        if !follows {
            let rank = (1, self.count());
            let start = self.start_of(expr);
            self.push(start..start, rank, InsertedText::First);
        }
        self.close(range(expr.span()).1, InsertedText::Close);
        for ((from, to), piece) in replaced {
            self.replace(from..to, piece);
        }
    }

    /// Returns the texts in the place of the signs of an operator; none if it stays as it is.
    fn signs(
        &self,
        op: &BinOp<'s>,
        operator: impl Fn(&'static str) -> InsertedText,
    ) -> Option<Vec<((usize, usize), InsertedText)>> {
        let is_in = matches!(op.op, BinOpKind::In);
        let is_sure = matches!(op.right, Expr::List(_) | Expr::Tuple(_) | Expr::Map(_));
        let sign = sign(op.op).filter(|_| !(is_in && is_sure))?;
        let (_, filter) = BINARY.iter().find(|(known, _)| *known == sign)?;
        let at = self.token_behind(&op.left);
        let next = |at: usize| {
            self.tokens
                .get(at)
                .map(|(token, span)| (token, range(*span)))
        };
        match (next(at), next(at + 1)) {
            (Some((Token::Ident("not"), not)), Some((Token::Ident("in"), second))) if is_in => {
                Some(vec![(not, operator(NOT_IN)), (second, InsertedText::Blank)])
            }
            (Some((token, place)), _) if is_operator(token, sign) => {
                Some(vec![(place, operator(filter))])
            }
            _ => None,
        }
    }

    /// Rewrites a slice: a value that cannot be cut has no parts, and a bound that is no whole
    /// number is none.
    fn slice(&mut self, slice: &Slice<'s>, expr: &Expr<'s>) {
        let bracket = self.token_behind(&slice.expr);
        if let Some((Token::BracketOpen, place)) = self.tokens.get(bracket) {
            let (before, _) = range(*place);
            self.open(self.start_of(expr));
            self.close(before, InsertedText::Filter(SLICED));
        }
        let bounds = [&slice.start, &slice.stop];
        let is_number =
            |bound: &Expr<'_>| matches!(bound, Expr::Const(number) if number.value.is_integer());
        for bound in bounds
            .into_iter()
            .flatten()
            .filter(|bound| !is_number(bound))
        {
            self.call(bound, BOUND);
        }
        if let Some(step) = &slice.step {
            self.call(step, STEP);
        }
    }

    /// A call of a filter around a value.
    fn call(&mut self, expr: &Expr<'s>, filter: &'static str) {
        self.open(self.start_of(expr));
        self.close(range(expr.span()).1, InsertedText::Filter(filter));
    }

    /// Returns the byte at which an expression begins. The engine gives it only for expressions
    /// that do not begin with another one.
    fn start_of(&self, expr: &Expr<'s>) -> usize {
        let (own, _) = range(expr.span());
        let first = match expr {
            Expr::BinOp(op) => &op.left,
            Expr::Compare(compare) => &compare.expr,
            Expr::IfExpr(choice) => &choice.true_expr,
            Expr::Test(test) => &test.expr,
            Expr::GetAttr(attr) => &attr.expr,
            Expr::GetItem(item) => &item.expr,
            Expr::Slice(slice) => &slice.expr,
            Expr::Call(call) => &call.expr,
            Expr::Filter(filter) => match &filter.expr {
                Some(first) => first,
                None => return own,
            },
            // `x is not y` and `x not in y` begin with x, and `not x` with the word.
            Expr::UnaryOp(op) if matches!(op.op, UnaryOpKind::Not) => {
                let inner = self.start_of(&op.expr);
                let is_behind = match &op.expr {
                    Expr::BinOp(op) if matches!(op.op, BinOpKind::In) => {
                        let sign = self.tokens.get(self.token_behind(&op.left));
                        matches!(sign, Some((Token::Ident("not"), _)))
                    }
                    _ => false,
                };
                return if is_behind { inner } else { own.min(inner) };
            }
            _ => return own,
        };
        // The brackets that end behind the first part begin before it.
        let brackets = self.token_behind(first) - self.first_token_behind(first);
        let start = self.start_of(first);
        let at = self.token_at(start).saturating_sub(brackets);
        self.tokens
            .get(at)
            .map_or(start, |(_, span)| range(*span).0)
    }

    /// The place of the first token behind an expression and the brackets that end around it.
    fn token_behind(&self, expr: &Expr<'s>) -> usize {
        let first = self.first_token_behind(expr);
        let mut behind = self.tokens[first..].iter();
        let brackets = behind.position(|(token, _)| !matches!(token, Token::ParenClose));
        first + brackets.unwrap_or(0)
    }

    fn first_token_behind(&self, expr: &Expr<'s>) -> usize {
        self.token_at(range(expr.span()).1)
    }

    /// The first token that does not begin before a place.
    fn token_at(&self, place: usize) -> usize {
        let is_before = |(_, span): &(Token<'s>, Span)| range(*span).0 < place;
        self.tokens.partition_point(is_before)
    }

    /// The outer ones are opened first. They were visited before.
    fn open(&mut self, at: usize) {
        let rank = (1, self.count());
        self.push(at..at, rank, InsertedText::Open);
    }

    /// The inner ones are closed first.
    fn close(&mut self, at: usize, piece: InsertedText) {
        let rank = (0, -self.count());
        self.push(at..at, rank, piece);
    }

    fn replace(&mut self, at: Range<usize>, piece: InsertedText) {
        let rank = (2, self.count());
        self.push(at, rank, piece);
    }

    fn count(&self) -> isize {
        isize::try_from(self.edits.len()).unwrap_or(isize::MAX)
    }

    fn push(&mut self, at: Range<usize>, rank: (u8, isize), piece: InsertedText) {
        self.edits.push(Edit { at, rank, piece });
    }
}

fn range(span: Span) -> (usize, usize) {
    (span.start_offset as usize, span.end_offset as usize)
}

fn sign(op: BinOpKind) -> Option<&'static str> {
    Some(match op {
        BinOpKind::Add => "+",
        BinOpKind::Sub => "-",
        BinOpKind::Mul => "*",
        BinOpKind::Div => "/",
        BinOpKind::FloorDiv => "//",
        BinOpKind::Rem => "%",
        BinOpKind::Pow => "**",
        BinOpKind::Concat => "~",
        BinOpKind::In => "in",
        _ => return None,
    })
}

fn is_operator(token: &Token<'_>, sign: &str) -> bool {
    match (token, sign) {
        (Token::Plus, "+") | (Token::Minus, "-") | (Token::Mul, "*") | (Token::Div, "/") => true,
        (Token::FloorDiv, "//") | (Token::Mod, "%") | (Token::Pow, "**") => true,
        (Token::Tilde, "~") => true,
        (Token::Ident(word), "in") => *word == "in",
        _ => false,
    }
}

#[cfg(test)]
mod tests;
