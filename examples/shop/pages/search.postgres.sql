-- param: q text = ''

-- What is typed becomes a list of words that all count, the last of them a prefix: all & the & hig:*. Signs become spaces, so none
-- means anything to to_tsquery(). Nothing finds nothing.
-- name: artists :many
select r.id, r.name, r.country from artist r
where r.words @@ to_tsquery('simple', nullif(replace(btrim(
    regexp_replace(translate(substr(:q, 1, 100), 'ÁÉÍÓÚáéíóúñ', 'AEIOUaeioun'), '[[:space:][:cntrl:][:punct:]<>=+|$^~`]+', ' ', 'g')
  ), ' ', ' & '), '') || ':*') order by lower(r.name), r.id limit 10;

-- name: albums :many
select a.id, a.title, a.released, a.cover, r.name as artist
from album a join artist r on r.id = a.artist_id
where a.words @@ to_tsquery('simple', nullif(replace(btrim(
    regexp_replace(translate(substr(:q, 1, 100), 'ÁÉÍÓÚáéíóúñ', 'AEIOUaeioun'), '[[:space:][:cntrl:][:punct:]<>=+|$^~`]+', ' ', 'g')
  ), ' ', ' & '), '') || ':*') order by lower(a.title), a.id limit 12;

-- name: tracks :many
select t.id, t.name, t.seconds, t.price_cents, t.album_id, a.title, r.name as artist
from track t join album a on a.id = t.album_id join artist r on r.id = a.artist_id
where t.words @@ to_tsquery('simple', nullif(replace(btrim(
    regexp_replace(translate(substr(:q, 1, 100), 'ÁÉÍÓÚáéíóúñ', 'AEIOUaeioun'), '[[:space:][:cntrl:][:punct:]<>=+|$^~`]+', ' ', 'g')
  ), ' ', ' & '), '') || ':*') order by lower(t.name), t.id limit 40;
