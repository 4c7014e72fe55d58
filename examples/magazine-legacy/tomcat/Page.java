import java.util.List;
import java.util.Map;

/** The pages as HTML: examples/articles/pages/read.html with its layout, and brief.html, letter for letter. */
final class Page {
    private static final String[] MONTHS = {"January", "February", "March", "April", "May", "June", "July", "August",
        "September", "October", "November", "December"};

    private Page() {}

    /** The whole page. */
    static String read(Article page) {
        var out = new StringBuilder(32_768);
        var a = page.article();
        head(out, a);
        article(out, page);
        talkback(out, page);
        out.append("""
                </main>
                <footer class="colophon">
                  <p><strong>Small Parts</strong> is set from the documentation of Millpond, which serves it: each article is a section of
                  a document.</p>
                  <p><a href="/about">About</a> <a href="/topics">Topics</a> <a href="/board">Board</a></p>
                </footer>
                </body>
                </html>""");
        return out.toString();
    }

    /** The page without the text. */
    static String brief(Article page) {
        var a = page.article();
        String title = h(a.get("title"));
        int related = page.needs().size() + page.neededBy().size() + page.near().size();
        return """
                <!doctype html>
                <html lang="en">
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width">
                <title>%s</title>
                <h1>%s</h1>
                <p>%s words, %s
                <p>Authors %d, topics %d, related %d, comments %s
                <p><a href="/read?id=%s">Read</a>""".formatted(title, title, number(a.get("words")),
                day(a.get("published_at")), page.authors().size(), page.topics().size(), related,
                number(page.said()), a.get("id"));
    }

    private static void head(StringBuilder out, Map<String, String> a) {
        out.append("""
                <!doctype html>
                <html lang="en">
                <head>
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width, initial-scale=1">
                <meta name="color-scheme" content="light dark">
                <title>%s · Small Parts</title>
                <meta name="description" content="%s">
                <link rel="icon" href="/favicon.svg" type="image/svg+xml">
                <link rel="stylesheet" href="/style.css">
                </head>
                <body>
                <a class="skip" href="#main">Skip to the text</a>
                <header class="masthead">
                  <a class="brand" href="/"><img src="/logo.svg" alt="" width="44" height="44"><span>Small Parts</span></a>
                  <nav aria-label="Sections">
                    <a href="/topics">Topics</a>
                    <a href="/authors">Authors</a>
                    <a href="/board">Board</a>
                    <a href="/about">About</a>
                    <a href="/account">Account</a>
                  </nav>
                  <form class="find" action="/search" role="search">
                    <label class="unseen" for="find">Search the magazine</label>
                    <input id="find" type="search" name="q" placeholder="Search" autocomplete="off" maxlength="200">
                  </form>
                </header>
                <main id="main">
                """.formatted(h(a.get("title")), h(a.get("summary"))));
    }

    private static void article(StringBuilder out, Article page) {
        var a = page.article();
        out.append("<article class=\"reading\">\n  <header>\n    <p class=\"kicker\">");
        for (var t : page.topics()) {
            out.append("<a href=\"/topics/%s\">%s</a>".formatted(h(t.get("slug")), h(t.get("name"))));
        }
        out.append("</p>\n    <h1>%s</h1>\n    <p class=\"standfirst\">%s</p>\n    <p class=\"meta\">\n"
                .formatted(h(a.get("title")), h(a.get("summary"))));
        if (!page.authors().isEmpty()) {
            String before = "By ";
            for (var u : page.authors()) {
                out.append(before).append("<a href=\"/authors/%s\">%s</a>".formatted(h(u.get("slug")), h(u.get("name"))));
                before = ", ";
            }
            out.append(" · ");
        }
        out.append("      <time datetime=\"%s\">%s</time> · %s words\n    </p>\n  </header>\n  <div class=\"body\">\n"
                .formatted(h(a.get("published_at")), h(day(a.get("published_at"))), number(a.get("words"))));
        out.append(a.get("body_html")).append("\n  </div>\n  <aside class=\"facts\">\n");
        facts(out, page);
        related(out, "Built on", page.needs());
        related(out, "Needed by", page.neededBy());
        related(out, "Near this", page.near());
        out.append("  </aside>\n</article>\n");
    }

    private static void facts(StringBuilder out, Article page) {
        var a = page.article();
        long id = Long.parseLong(a.get("id"));
        out.append("<span class=\"part\" style=\"--part: url(/parts/%d.svg); --hue: %d\" aria-hidden=\"true\"></span>    <dl>\n"
                .formatted(id % 8, id * 47 % 360));
        fact(out, "Version", a.get("version"), "%s");
        fact(out, "Licence", a.get("license"), "%s");
        fact(out, "Source", a.get("repository"), "<a href=\"%s\" rel=\"nofollow noopener noreferrer\">Repository</a>");
        out.append("      <div><dt>Comments</dt><dd><a href=\"#comments\">%s</a></dd></div>\n    </dl>\n"
                .formatted(number(page.said())));
    }

    private static void fact(StringBuilder out, String name, String value, String form) {
        if (value != null && !value.isEmpty()) {
            out.append("<div><dt>%s</dt><dd>%s</dd></div>".formatted(name, form.formatted(h(value))));
        }
    }

    private static void related(StringBuilder out, String title, List<Map<String, String>> others) {
        if (others.isEmpty()) {
            return;
        }
        out.append("    <h2>%s</h2>\n    <ul>\n".formatted(title));
        for (var other : others) {
            out.append("      <li><a href=\"/read?id=%s\" title=\"%s\">%s</a></li>\n"
                    .formatted(other.get("id"), h(other.get("summary")), h(other.get("title"))));
        }
        out.append("    </ul>\n");
    }

    private static void talkback(StringBuilder out, Article page) {
        String id = page.article().get("id");
        out.append("""
                <section class="talkback" id="comments" aria-labelledby="comments-title">
                  <h2 class="rubric" id="comments-title">%s %s</h2>
                  <form class="write" method="post" action="/comment">
                    <input type="hidden" name="id" value="%s">
                    <p><label for="who">Your name</label> <input id="who" name="who" maxlength="80" autocomplete="nickname" aria-describedby="who-hint"> <small id="who-hint">Not needed if you are <a href="/account">signed in</a>.</small></p>
                    <p><label for="said">Your comment</label> <textarea id="said" name="body" required maxlength="4000" rows="4"></textarea></p>
                    <p><button>Send</button></p>
                  </form>
                <ol class="comments">
                """.formatted(number(page.said()), page.said() == 1 ? "comment" : "comments", id));
        for (var c : page.comments()) {
            String signed = c.get("signed").equals("t") ? " <span class=\"signed\" title=\"Signed with an account\">signed</span>" : "";
            out.append("""
                      <li id="c%s">
                        <p class="by"><strong>%s</strong>%s <time datetime="%s">%s</time></p>
                        <div class="said">%s</div>
                      </li>
                    """.formatted(c.get("id"), h(c.get("who")), signed, h(c.get("at")), h(day(c.get("at"))), h(c.get("body"))));
        }
        if (page.comments().isEmpty()) {
            out.append("  <li class=\"nothing\">Nobody has said anything yet.</li>\n");
        }
        out.append("</ol>");
        if (page.said() > 20) {
            out.append("<p><a class=\"more\" href=\"/discussion?id=%s\">All %s comments</a></p>".formatted(id, number(page.said())));
        }
        out.append("</section>\n");
    }

    /** Text for HTML, with the escapes that Millpond's templates write. */
    private static String h(String text) {
        if (text == null) {
            return "";
        }
        var out = new StringBuilder(text.length() + 16);
        for (int n = 0; n < text.length(); n++) {
            char c = text.charAt(n);
            switch (c) {
                case '&' -> out.append("&amp;");
                case '<' -> out.append("&lt;");
                case '>' -> out.append("&gt;");
                case '"' -> out.append("&quot;");
                case '\'' -> out.append("&#x27;");
                case '/' -> out.append("&#x2f;");
                default -> out.append(c);
            }
        }
        return out.toString();
    }

    /** 2026-03-03T… is 3 March 2026; anything else stays as it is. */
    private static String day(String text) {
        if (!text.matches("[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}.*")) {
            return text;
        }
        int month = Integer.parseInt(text.substring(5, 7));
        return Integer.parseInt(text.substring(8, 10)) + " " + MONTHS[month - 1] + " " + text.substring(0, 4);
    }

    private static String number(String value) {
        return number(Long.parseLong(value));
    }

    /** 12345 is 12 345, with a narrow no-break space. */
    private static String number(long value) {
        return "%,d".formatted(value).replace(',', '\u202f');
    }
}
