-- param: id integer
-- param: part text in (album, tracks, reviews) = album
-- require: claims.role = 'editor' else /login

-- name: album :one
select id, title, artist_id, genre_id, released, cover from album where id = :id;

-- name: artists :many
select id, name from artist order by lower(name), id;

-- name: tracks :many
select id, position, name, seconds, price_cents from track where album_id = :id order by position;

-- name: next :one
select coalesce(max(position), 0) + 1 as position from track where album_id = :id;

-- name: reviews :many
select id, headline, author, at from review where album_id = :id order by at desc, id desc;

-- An album of which a track was sold stays.
-- name: sold :one
select count(*) as tracks from track t join purchase_line l on l.track_id = t.id where t.album_id = :id;
