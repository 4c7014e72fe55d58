-- The rows of ../../docs/ and of the files in data/, as `millpond check --fix` wrote them.

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
  is_internal boolean not null,
  _file text not null
);

create table internals (
  id integer primary key,
  folder text not null,
  slug text not null,
  _file text not null
);

-- The documents in the order of their lists.
create view listed as
select docs.folder, docs.slug, docs.title, docs.body,
  sections.is_internal or exists (
    select 1 from internals where internals.folder = docs.folder and internals.slug = docs.slug
  ) as is_internal
from docs join sections on sections.folder = docs.folder;
