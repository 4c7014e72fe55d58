-- param: name text
-- param: country text
-- param: since integer
-- param: about text = ''
-- require: claims.role = 'editor' else /login

-- name: artist :one
insert into artist (name, country, since, about) values (trim(:name), trim(:country), :since, :about) returning id as artist_id;

-- redirect: /artists/:artist_id
