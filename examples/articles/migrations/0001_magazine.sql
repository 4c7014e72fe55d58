-- The magazine: articles with their authors, topics and relations, comments, a message board, and a full-text index.
-- Dates are ISO 8601 in UTC, "2026-03-01T09:30:00Z", so that text order is time order.

create table author (
  id   integer primary key,
  slug text not null unique check (length(slug) between 1 and 200),
  name text not null check (length(name) between 1 and 200)
);

create table topic (
  id      integer primary key,
  slug    text not null unique check (length(slug) between 1 and 200),
  name    text not null check (length(name) between 1 and 100),
  summary text not null default '' check (length(summary) <= 500)
);

-- The bodies stand last: SQLite stores a long row as a chain of pages, and a list of titles then reads only the first.
create table article (
  id           integer primary key,
  slug         text not null unique check (length(slug) between 1 and 200),
  title        text not null check (length(title) between 1 and 300),
  summary      text not null default '' check (length(summary) <= 1000),
  published_at text not null check (published_at glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z'),
  words        integer not null check (words >= 0),
  version      text,
  license      text,
  repository   text check (repository is null or repository like 'https://%'),
  body_html    text not null,
  body_text    text not null
);

create index article_newest on article (published_at desc, id desc);

create table article_author (
  article_id integer not null references article (id) on delete cascade,
  author_id  integer not null references author (id) on delete cascade,
  position   integer not null,
  primary key (article_id, author_id)
) without rowid;

create index article_author_author on article_author (author_id);

create table article_topic (
  article_id integer not null references article (id) on delete cascade,
  topic_id   integer not null references topic (id) on delete cascade,
  position   integer not null,
  primary key (article_id, topic_id)
) without rowid;

create index article_topic_topic on article_topic (topic_id);

-- One row for each direction. `title` and `summary` are those of the other article, kept equal by the triggers below:
-- an article's page then reads only rows of its own, and an edit elsewhere reaches exactly the pages that show it.
create table related (
  article_id integer not null references article (id) on delete cascade,
  other_id   integer not null references article (id) on delete cascade,
  kind       text not null check (kind in ('needs', 'needed by', 'near')),
  position   integer not null,
  title      text not null,
  summary    text not null,
  primary key (article_id, other_id)
) without rowid;

create index related_other on related (other_id);

create trigger article_related after update of title, summary on article
when old.title is not new.title or old.summary is not new.summary
begin
  update related set title = new.title, summary = new.summary where other_id = new.id;
end;

create table comment (
  id         integer primary key,
  article_id integer not null references article (id) on delete cascade,
  who        text not null check (length(who) between 1 and 80),
  body       text not null check (length(body) between 1 and 4000),
  at         text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);

create index comment_article on comment (article_id, at desc, id desc);

create table thread (
  id        integer primary key,
  topic_id  integer unique references topic (id) on delete set null,
  title     text not null check (length(title) between 1 and 160),
  opened_at text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);

create table post (
  id        integer primary key,
  thread_id integer not null references thread (id) on delete cascade,
  who       text not null check (length(who) between 1 and 80),
  body      text not null check (length(body) between 1 and 4000),
  at        text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);

create index post_thread on post (thread_id, id);

-- The index holds no text of its own (external content); the triggers tell it of every change.
create virtual table article_fts using fts5 (
  title, summary, body_text,
  content = 'article', content_rowid = 'id',
  tokenize = 'porter unicode61 remove_diacritics 2'
);

-- A word in the title counts for more than one in the text; `rank` sorts by this from now on.
insert into article_fts (article_fts, rank) values ('rank', 'bm25(10.0, 4.0, 1.0)');

create trigger article_fts_insert after insert on article
begin
  insert into article_fts (rowid, title, summary, body_text) values (new.id, new.title, new.summary, new.body_text);
end;

create trigger article_fts_delete after delete on article
begin
  insert into article_fts (article_fts, rowid, title, summary, body_text)
  values ('delete', old.id, old.title, old.summary, old.body_text);
end;

create trigger article_fts_update after update of id, title, summary, body_text on article
begin
  insert into article_fts (article_fts, rowid, title, summary, body_text)
  values ('delete', old.id, old.title, old.summary, old.body_text);
  insert into article_fts (rowid, title, summary, body_text) values (new.id, new.title, new.summary, new.body_text);
end;
