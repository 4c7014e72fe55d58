-- The rows of data/posts/ and data/pages/, a file each, as `millpond check --fix` writes them. A file that a `check` refuses
-- keeps its former row, and the log says why.

create table posts (
  slug text primary key constraint "the slug is a part of an address, without a /" check (slug <> '' and slug not like '%/%'),
  title text,
  date date text,
  summary text,
  tags text constraint "the tags are a list, such as [walks, winter], without a /" check (tags is null or json_valid(tags) and tags like '[%' and tags not like '%/%'),
  draft integer,
  publishdate datetime,
  expirydate datetime,
  preview text unique constraint "the preview is a word of eight letters or more, without a /" check (length(preview) >= 8 and preview not like '%/%'),
  body text,
  _file text not null
);

create index posts_by_file on posts (_file);
create index posts_by_date on posts (date, slug);

-- What is shown: the only place that says which posts are. A date to come is one of UTC. As the view asks the clock, each query
-- of it says how old its result may be (`-- max-age:`); a change of a file ends it at once all the same.
create view published as
select * from posts where draft is not true and (date is null or date <= current_date)
and (publishdate is null or publishdate <= datetime('now')) and (expirydate is null or expirydate > datetime('now'));

create table pages (
  slug text primary key constraint "the slug is a part of an address, without a /" check (slug <> '' and slug not like '%/%'),
  title text,
  menu integer,
  draft integer,
  preview text unique constraint "the preview is a word of eight letters or more, without a /" check (length(preview) >= 8 and preview not like '%/%'),
  body text,
  _file text not null
);

create index pages_by_file on pages (_file);
