-- Applied once, when the site starts. What comes later goes into 0002_….sql; this file stays as it is.

create table account (
  id            integer primary key,
  name          text not null unique check (length(name) between 1 and 80),
  password_hash text not null,
  role          text not null default 'reader' check (role in ('reader', 'author'))
);

create table post (
  id           integer primary key,
  slug         text not null unique check (length(slug) between 1 and 100 and slug not like '%/%'),
  title        text not null check (length(title) between 1 and 200),
  summary      text not null default '' check (length(summary) <= 500),
  body         text not null check (length(body) between 1 and 100000),
  author       text not null,
  is_public    boolean not null default false,
  published_at text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);

-- A post is as old as its publication.
create trigger post_published after update of is_public on post when new.is_public and not old.is_public begin
  update post set published_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now') where id = new.id;
end;

create index post_newest on post (published_at desc, id desc);

create table tag (
  id   integer primary key,
  name text not null unique check (length(name) between 1 and 40 and name not like '%/%')
);

create table post_tag (
  post_id integer not null references post (id) on delete cascade,
  tag_id  integer not null references tag (id) on delete cascade,
  primary key (post_id, tag_id)
);

create index post_tag_tag on post_tag (tag_id);

create table comment (
  id         integer primary key,
  post_id    integer not null references post (id) on delete cascade,
  who        text not null check (length(who) between 1 and 80),
  body       text not null check (length(body) between 1 and 4000),
  is_allowed boolean not null default false,
  at         text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);

create index comment_post on comment (post_id);
