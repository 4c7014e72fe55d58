-- The rows of data/posts/ and data/pages/, a file each, as `millpond check --fix` writes them. A file that a `check` refuses
-- keeps its former row, and the log says why.

create table posts (
  slug text primary key,
  title text,
  date date,
  summary text,
  tags jsonb constraint "the tags are a list, such as [walks, winter], without a /" check (jsonb_typeof(tags) = 'array' and tags::text not like '%/%'),
  draft boolean,
  body text,
  _file text not null
);

create index posts_by_file on posts (_file);
create index posts_by_date on posts (date, slug);

create table pages (
  slug text primary key,
  title text,
  body text,
  _file text not null
);

create index pages_by_file on pages (_file);

-- The tables whose changes PostgreSQL sends to the server, with what was in a row before.
alter table posts replica identity full;
create publication millpond for table posts, pages;
