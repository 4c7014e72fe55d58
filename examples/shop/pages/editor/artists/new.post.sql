-- param: name text
-- param: country text
-- param: since integer
-- param: about text = ''
-- require: claims.role = 'editor' else /login

-- name: artist :one
insert into artist (name, country, since, about) values (trim(:name), trim(:country), :since, :about) returning id as artist_id;

-- message: name unique = "This artist is in the shop."
-- message: name check = "A name has 1 to 120 characters."
-- message: country check = "A country has 1 to 80 characters."
-- message: since = "A year is from 1900 to 2100."
-- message: about check = "The text has 4,000 characters at most."
-- invalid: /editor/artists/new
-- redirect: /artists/:artist_id
