-- param: q text = ''

-- What is typed becomes a list of quoted words that all count, the last of them a prefix: "all" "the" "hig" *. Nothing finds nothing.
-- name: artists :many
select r.id, r.name, r.country from artist_words join artist r on r.id = artist_words.rowid
where artist_words match '"' || replace(trim(replace(substr(:q, 1, 100), '"', ' ')), ' ', '" "') || '" *' order by lower(r.name), r.id limit 10;

-- name: albums :many
select a.id, a.title, a.released, a.cover, r.name as artist
from album_words join album a on a.id = album_words.rowid join artist r on r.id = a.artist_id
where album_words match '"' || replace(trim(replace(substr(:q, 1, 100), '"', ' ')), ' ', '" "') || '" *' order by lower(a.title), a.id limit 12;

-- name: tracks :many
select t.id, t.name, t.seconds, t.price_cents, t.album_id, a.title, r.name as artist
from track_words join track t on t.id = track_words.rowid join album a on a.id = t.album_id join artist r on r.id = a.artist_id
where track_words match '"' || replace(trim(replace(substr(:q, 1, 100), '"', ' ')), ' ', '" "') || '" *' order by lower(t.name), t.id limit 40;
