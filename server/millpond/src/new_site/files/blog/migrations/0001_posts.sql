-- The rows of data/posts/ and data/pages/, a file each, as `millpond check --fix` writes them. A file that a `check` refuses
-- keeps its former row, and the log says why.

create table posts (
  slug text primary key,
  title text,
  date text constraint "the date is a day, such as 2026-01-31" check (date is null or date(date) is not null and date(substr(date, 1, 10), '+0 days') is substr(date, 1, 10)),
  summary text,
  tags text constraint "the tags are a list, such as [walks, winter], without a /" check (tags is null or json_valid(tags) and tags like '[%' and tags not like '%/%'),
  draft integer,
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
