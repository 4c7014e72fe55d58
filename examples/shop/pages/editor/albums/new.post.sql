-- param: title text
-- param: artist integer
-- param: genre integer
-- param: released text
-- require: claims.role = 'editor' else /login

-- name: album :one
insert into album (title, artist_id, genre_id, released) values (trim(:title), :artist, :genre, :released) returning id as album_id;

-- redirect: /editor/albums/:album_id
