-- Applied once, when the site starts. What comes later goes into 0002_….sql; this file stays as it is.

create table account (
  id            integer primary key,
  name          text not null unique check (length(name) between 1 and 80),
  password_hash text not null
);

create table task (
  id         integer primary key,
  account_id integer not null references account (id) on delete cascade,
  title      text not null check (length(title) between 1 and 200),
  note       text not null default '' check (length(note) <= 4000),
  done       integer not null default 0 check (done in (0, 1)),
  due        text check (due like '____-__-__'),
  made_at    text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);

create index task_account on task (account_id);
