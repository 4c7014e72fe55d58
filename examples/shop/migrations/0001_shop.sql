-- A record shop in the shape of the Chinook sample: artists have albums, albums have tracks, customers buy tracks.
-- Prices are whole cents, dates are texts, so that both databases write them alike.

create table genre (
  id   integer primary key,
  name text not null unique check (length(name) between 1 and 60),
  hue  integer not null check (hue between 0 and 359)
) strict;

create table artist (
  id      integer primary key,
  name    text not null unique check (length(name) between 1 and 120),
  country text not null check (length(country) between 1 and 80),
  since   integer not null check (since between 1900 and 2100),
  about   text not null default '' check (length(about) <= 4000)
) strict;

create table album (
  id        integer primary key,
  title     text not null check (length(title) between 1 and 160),
  artist_id integer not null references artist (id),
  genre_id  integer not null references genre (id),
  released  text not null check (released = date(released) and substr(released, 1, 4) between '1900' and '2100'),
  unique (artist_id, title)
) strict;

create index album_genre on album (genre_id);
create index album_released on album (released desc, id desc);

create table track (
  id          integer primary key,
  album_id    integer not null references album (id) on delete cascade,
  position    integer not null check (position between 1 and 99),
  name        text not null check (length(name) between 1 and 160),
  seconds     integer not null check (seconds between 1 and 86400),
  price_cents integer not null check (price_cents between 0 and 100000),
  unique (album_id, position)
) strict;

create table account (
  id            integer primary key,
  name          text not null unique check (length(name) between 1 and 80),
  password_hash text,
  role          text not null default 'customer' check (role in ('customer', 'editor')),
  opened_at     text not null default current_timestamp
) strict;

-- A basket belongs to a session, and once its visitor has signed in, to the account. No number is given twice, because
-- sessions keep the number of their basket.
create table basket (
  id         integer primary key autoincrement,
  account_id integer unique references account (id) on delete cascade
) strict;

create table basket_line (
  basket_id integer not null references basket (id) on delete cascade,
  track_id  integer not null references track (id) on delete cascade,
  primary key (basket_id, track_id)
) strict;

create index basket_line_track on basket_line (track_id);

create table purchase (
  id         integer primary key,
  account_id integer not null references account (id),
  country    text not null check (length(country) between 1 and 80),
  note       text not null default '' check (length(note) <= 500),
  placed_at  text not null default current_timestamp
) strict;

create index purchase_account on purchase (account_id);

-- The price is that of the day. A track that was sold stays.
create table purchase_line (
  purchase_id integer not null references purchase (id) on delete cascade,
  track_id    integer not null references track (id),
  price_cents integer not null check (price_cents >= 0),
  primary key (purchase_id, track_id)
) strict;

create index purchase_line_track on purchase_line (track_id);

create table review (
  id       integer primary key,
  album_id integer not null references album (id) on delete cascade,
  author   text not null check (length(author) between 1 and 80),
  headline text not null check (length(headline) between 1 and 160),
  body     text not null check (length(body) between 1 and 20000),
  at       text not null default current_timestamp
) strict;

create index review_album on review (album_id);
create index review_newest on review (at desc, id desc);
