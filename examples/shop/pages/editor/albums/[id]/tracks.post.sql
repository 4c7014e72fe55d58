-- param: position integer
-- param: name text
-- param: seconds integer
-- param: price integer
-- param: id integer
-- require: claims.role = 'editor' else /login

-- name: track :one
insert into track (album_id, position, name, seconds, price_cents)
values (:id, :position, trim(:name), :seconds, :price) returning id as track_id;

-- message: position unique = "The album has a track of this number."
-- message: position = "A number is from 1 to 99."
-- message: name check = "A title has 1 to 160 characters."
-- message: seconds = "A track has 1 to 86,400 seconds."
-- message: price = "A price is from 0 to 100,000 cents."
-- invalid: /editor/albums/:id?part=tracks#tracks
-- redirect: /editor/albums/:id#tracks
