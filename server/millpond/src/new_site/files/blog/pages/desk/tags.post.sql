-- param: name text
-- require: claims.role = 'author' else /login

-- name: tag :exec
insert into tag (name) values (trim(:name));

-- message: name unique = "There is a tag of this name."
-- message: name check = "A tag has 1 to 40 characters, and no slash."
-- invalid: /desk#tags
-- redirect: /desk
