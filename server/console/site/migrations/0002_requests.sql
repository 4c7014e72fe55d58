-- The last requests, while their page is looked at.
create table seen (
  id integer primary key,
  at_ms integer not null,
  client text not null,
  method text not null,
  target text not null,
  status integer not null,
  bytes integer not null,
  micros integer not null,
  route text,
  outcome text not null,
  is_crawler integer not null
);
