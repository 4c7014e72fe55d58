-- Numbers are given out by order, so one import at a time. Readers, and what they write, go on.
lock table article, author, topic in share row exclusive mode;

create temp table in_topic (
  n integer, slug text collate "C", name text collate "C", summary text collate "C"
) on commit drop;

-- Everything is sent as text; `words` becomes a number where it is used.
create temp table in_article (
  n integer, slug text collate "C", title text collate "C", summary text collate "C", published_at text collate "C",
  words text, version text collate "C", license text collate "C", repository text collate "C",
  body_html text collate "C", body_text text collate "C"
) on commit drop;

-- Of these `n` is the place within the article, which `article` names by its number above.
create temp table in_author (
  n integer, article text, slug text collate "C", name text collate "C"
) on commit drop;

create temp table in_about (n integer, article text, topic text collate "C") on commit drop;

create temp table in_related (
  n integer, article text, slug text collate "C", kind text collate "C"
) on commit drop;

create temp table in_comment (
  n integer, article text, who text collate "C", body text collate "C", at text collate "C"
) on commit drop;

create temp table in_thread (
  n integer, topic text collate "C", title text collate "C", who text collate "C", body text collate "C",
  at text collate "C"
) on commit drop;
