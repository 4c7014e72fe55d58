-- param: id integer
-- param: title text
-- param: artist integer
-- param: genre integer
-- param: released text
-- require: claims.role = 'editor' else /login

-- name: album :one
update album set title = trim(:title), artist_id = :artist, genre_id = :genre, released = :released where id = :id returning id;

-- redirect: /albums/:id
