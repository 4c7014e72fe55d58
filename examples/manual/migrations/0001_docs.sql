-- The rows of ../../docs/ and of data/sections.yaml, as `millpond check --fix` wrote them.

create table docs (
  folder text not null,
  slug text not null,
  title text,
  body text,
  _file text not null,
  primary key (folder, slug)
);

create index docs_by_file on docs (_file);

create table sections (
  id integer primary key,
  folder text not null unique,
  title text not null,
  about text not null,
  _file text not null
);
