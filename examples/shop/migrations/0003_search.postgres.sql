-- What a search looks in: the words of artists, albums and tracks, in no language of its own, without accents on the letters
-- of the catalogue. Without signs, because PostgreSQL would take AC/DC for the name of a file and <b> for no word at all.
create function words(text) returns tsvector language sql immutable
return to_tsvector('simple', regexp_replace(translate($1, 'ÁÉÍÓÚáéíóúñ', 'AEIOUaeioun'), '[[:space:][:cntrl:][:punct:]<>=+|$^~`]+', ' ', 'g'));

alter table artist add column words tsvector not null generated always as (words(name)) stored;
alter table album add column words tsvector not null generated always as (words(title)) stored;
alter table track add column words tsvector not null generated always as (words(name)) stored;

create index artist_words on artist using gin (words);
create index album_words on album using gin (words);
create index track_words on track using gin (words);

-- The catalogue came with its numbers; what comes next counts on from there.
select setval(pg_get_serial_sequence('genre', 'id'), max(id)) from genre;
select setval(pg_get_serial_sequence('artist', 'id'), max(id)) from artist;
select setval(pg_get_serial_sequence('album', 'id'), max(id)) from album;
select setval(pg_get_serial_sequence('track', 'id'), max(id)) from track;
select setval(pg_get_serial_sequence('account', 'id'), max(id)) from account;
select setval(pg_get_serial_sequence('purchase', 'id'), max(id)) from purchase;
select setval(pg_get_serial_sequence('review', 'id'), max(id)) from review;
