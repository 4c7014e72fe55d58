-- param: name text
-- hash: password_hash = :password

-- name: account :one
insert into account (name, password_hash) values (trim(:name), :password_hash) returning id as account_id, role;

-- name: basket :one
insert into basket (account_id) values (:account_id) returning id as basket_id;

-- name: carried :exec
insert into basket_line (basket_id, track_id)
select :basket_id, track_id from basket_line where basket_id = :claims.basket;

-- claims: user = account.account_id, role = account.role, basket = basket.basket_id
-- message: name unique = "Another customer has this name."
-- message: name check = "A name has 1 to 80 characters."
-- invalid: /register
-- redirect: /basket
