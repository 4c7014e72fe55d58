-- Something to look at. Delete it at the desk.
insert into tag (name) values ('millpond'), ('writing');

insert into post (slug, title, summary, body, author, is_public, published_at) values (
  'hello',
  'Hello',
  'What this blog is made of, and where to begin.',
  'This post is a row of the table `post`, and its text is **Markdown**: *emphasis*, [links](https://commonmark.org/help/), lists, quotations and code.

> Every page is kept in memory until something that it shows is changed.

## Where to begin

1. Open an account at [/register](/register), and make it an author as `README.md` says.
2. Write a post at [the desk](/desk).
3. Change `templates/layout.html` and `static/style.css`: the next page that you load has the changes.',
  'Millpond', true, '2026-01-01T09:00:00Z'
);

insert into post_tag (post_id, tag_id) select p.id, t.id from post p, tag t;

insert into comment (post_id, who, body, is_allowed, at)
select id, 'A reader', 'Comments are plain text, and an author lets them through.', true, '2026-01-01T10:00:00Z' from post;
