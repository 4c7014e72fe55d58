-- Applied once, when the site starts. What comes later goes into 0002_….sql; this file stays as it is.
create table note (
  id    integer primary key,
  title text not null check (length(title) between 1 and 200),
  body  text not null check (length(body) between 1 and 20000),
  at    text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);

create index note_newest on note (at desc, id desc);

insert into note (title, body) values (
  'The first note',
  'This page was made from a database when you asked for it, and kept.' || char(10) || char(10) ||
  'Write another note below: it is on the next page that anybody loads. Change a row with any other program, and the page follows.'
);
