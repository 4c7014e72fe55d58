-- POST /api/albums: a new album, by an editor
-- require: claims.role = 'editor'
-- param: title text
-- param: artist_id integer
-- param: genre_id integer
-- param: released date from 1900-01-01 to 2099-12-31

-- name: album :one
insert into album (title, artist_id, genre_id, released) values (trim(:title), :artist_id, :genre_id, :released)
returning id, title, released, artist_id, genre_id;

-- created: /api/albums/:id
-- json: album
