-- Readers with an account, and the comments that they have signed with it.

create table account (
  id            integer primary key,
  name          text not null unique check (length(name) between 1 and 80),
  password_hash text not null,
  -- Part of each session's claims: raising it ends them all.
  session_epoch integer not null default 0,
  opened_at     text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);

alter table comment add column account_id integer references account (id) on delete set null;

create index comment_account on comment (account_id, at desc, id desc);
