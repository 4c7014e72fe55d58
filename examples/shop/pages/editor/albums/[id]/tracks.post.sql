-- param: id integer
-- param: position integer
-- param: name text
-- param: seconds integer
-- param: price integer
-- require: claims.role = 'editor' else /login

-- name: track :one
insert into track (album_id, position, name, seconds, price_cents)
values (:id, :position, trim(:name), :seconds, :price) returning id as track_id;

-- redirect: /editor/albums/:id#tracks
