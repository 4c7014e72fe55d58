-- POST /api/albums: a new album, by an editor
-- require: claims.role = 'editor'
-- param: title text
-- param: artist_id integer
-- param: genre_id integer
-- param: released text

-- name: album :one
insert into album (title, artist_id, genre_id, released) values (trim(:title), :artist_id, :genre_id, :released)
returning id, title, released, artist_id, genre_id;

-- created: /api/albums/:id
-- json: album
