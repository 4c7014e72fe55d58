-- param: country text
-- param: note text = ''
-- require: claims.user else /login

-- Writing the basket's row lets a second order of it, from a second click, wait for the first. It then finds the basket empty.
-- name: basket :one
update basket set account_id = account_id where id = :claims.basket returning id as basket_id;

-- An empty basket: nothing is written.
-- name: purchase :one
insert into purchase (account_id, country, note)
select a.id, trim(:country), trim(:note) from account a
where a.id = :claims.user and exists (select 1 from basket_line where basket_id = :basket_id)
returning id as purchase_id;

-- name: lines :exec
insert into purchase_line (purchase_id, track_id, price_cents)
select p.id, t.id, t.price_cents
from purchase p, basket_line l join track t on t.id = l.track_id
where p.id = :purchase_id and l.basket_id = :basket_id;

-- name: emptied :exec
delete from basket_line where basket_id = :basket_id;

-- message: basket = "The basket is empty."
-- message: purchase = "The basket is empty."
-- message: country check = "A country has 1 to 80 characters."
-- message: note check = "A note has 500 characters at most."
-- invalid: /basket
-- redirect: /orders/:purchase_id?thanks=true
