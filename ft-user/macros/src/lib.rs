//! The attribute of `ft-user`, which a macro by example cannot be.
//!
//! Without a parser of Rust: all that must be known of a function is its name, which follows `fn`, and its body, the last of
//! its tokens. The attribute stays cheap to build for programs that need no such parser otherwise.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// Records each call of a function: `ft_user::function` has the documentation.
#[proc_macro_attribute]
pub fn function(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match expanded(arguments, item.clone()) {
        Ok(tokens) => tokens,
        // The function stays: what calls it has no errors of its own.
        Err(error) => [error.into_tokens(), item].into_iter().collect(),
    }
}

/// What is wrong, and where.
struct Wrong {
    what: &'static str,
    at: Span,
}

impl Wrong {
    /// `::core::compile_error!{"…"}`
    fn into_tokens(self) -> TokenStream {
        let text = TokenTree::from(Literal::string(self.what));
        call("core", "compile_error", [text].into_iter().collect(), self.at)
    }
}

/// The function with a guard at the begin of its body.
fn expanded(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Wrong> {
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let name = name(&tokens)?;
    let Some(body) = tokens.pop().and_then(block) else {
        return Err(Wrong { what: "a function without a body has no calls", at: name.span() });
    };
    // A name that is given, or a part of the path.
    let shown: TokenStream = match given(arguments)? {
        Some(given) => [TokenTree::from(given)].into_iter().collect(),
        None => {
            let own = Literal::string(name.to_string().trim_start_matches("r#"));
            [Ident::new("path", name.span()).into(), TokenTree::from(own)].into_iter().collect()
        }
    };
    let guard = guard(shown, name.span());
    let mut traced = Group::new(Delimiter::Brace, guarded(guard, body.stream()));
    traced.set_span(body.span());
    tokens.push(traced.into());
    Ok(tokens.into_iter().collect())
}

/// A body, in an invisible group if it is an argument of a macro.
fn block(token: TokenTree) -> Option<Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            group.stream().into_iter().last().and_then(block)
        }
        _ => None,
    }
}

/// The name of the function.
fn name(tokens: &[TokenTree]) -> Result<Ident, Wrong> {
    let mut before = None;
    for token in tokens {
        let TokenTree::Ident(word) = token else { continue };
        match word.to_string().as_str() {
            "async" => {
                let what = "a task is followed by `ft_user::task::named`: what an `async fn` returns is not what it does";
                return Err(Wrong { what, at: word.span() });
            }
            "const" => {
                let what = "calls of a `const fn` cannot be recorded: it may run in the compiler";
                return Err(Wrong { what, at: word.span() });
            }
            _ if before.as_deref() == Some("fn") => return Ok(word.clone()),
            text => before = Some(text.to_owned()),
        }
    }
    let at = tokens.first().map_or_else(Span::call_site, TokenTree::span);
    Err(Wrong { what: "`#[ft_user::function]` stands before a function", at })
}

/// The name that the attribute was given.
fn given(arguments: TokenStream) -> Result<Option<Literal>, Wrong> {
    let mut arguments = arguments.into_iter();
    let what = "`#[ft_user::function]` takes a name in quotation marks, or nothing";
    match (arguments.next(), arguments.next()) {
        (None, _) => Ok(None),
        (Some(TokenTree::Literal(name)), None) if name.to_string().starts_with('"') => {
            Ok(Some(name))
        }
        (Some(other), _) => Err(Wrong { what, at: other.span() }),
    }
}

/// A body with a statement before its own, behind its inner attributes, `#![…]`.
fn guarded(guard: TokenStream, body: TokenStream) -> TokenStream {
    let body: Vec<TokenTree> = body.into_iter().collect();
    let is =
        |token: &TokenTree, c| matches!(token, TokenTree::Punct(punct) if punct.as_char() == c);
    let is_inner = |three: &&[TokenTree]| is(&three[0], '#') && is(&three[1], '!');
    let inner = 3 * body.chunks_exact(3).take_while(is_inner).count();
    let mut statements = body.into_iter();
    let attributes: Vec<TokenTree> = statements.by_ref().take(inner).collect();
    attributes.into_iter().chain(guard).chain(statements).collect()
}

/// `let _function = ::ft_user::__function!{name};`
fn guard(name: TokenStream, at: Span) -> TokenStream {
    let begin: [TokenTree; 3] = [
        Ident::new("let", at).into(),
        // One that the body cannot use.
        Ident::new("_function", Span::mixed_site()).into(),
        Punct::new('=', Spacing::Alone).into(),
    ];
    let end = TokenTree::from(Punct::new(';', Spacing::Alone));
    begin.into_iter().chain(call("ft_user", "__function", name, at)).chain([end]).collect()
}

/// `::krate::name!{arguments}`
fn call(krate: &str, name: &str, arguments: TokenStream, at: Span) -> TokenStream {
    let colons = || [Punct::new(':', Spacing::Joint), Punct::new(':', Spacing::Alone)];
    let path = colons().map(TokenTree::from).into_iter();
    let path = path.chain([Ident::new(krate, at).into()]).chain(colons().map(TokenTree::from));
    let rest: [TokenTree; 3] = [
        Ident::new(name, at).into(),
        Punct::new('!', Spacing::Alone).into(),
        Group::new(Delimiter::Brace, arguments).into(),
    ];
    let spanned = |mut token: TokenTree| {
        token.set_span(at);
        token
    };
    path.chain(rest).map(spanned).collect()
}
