-- The columns of data/entries.xml.
create table entries (
  id integer primary key,
  first text not null,
  last text not null,
  street text,
  code text,
  city text,
  phone text,
  email text,
  _file text not null
);
create index entries_name on entries (last, first);
