-- param: name text
-- param: next text = ''

-- Without such an account the answer is the same, after the same time.
-- name: account :one?
select id as account_id, role, password_hash from account where name = trim(:name);

-- verify: account.password_hash = :password

-- The basket of the account, and into it what the visitor has put into one before signing in.
-- name: basket :one
insert into basket (account_id) values (:account_id)
on conflict (account_id) do update set account_id = excluded.account_id returning id as basket_id;

-- name: carried :exec
insert into basket_line (basket_id, track_id)
select :basket_id, track_id from basket_line where basket_id = :claims.basket
on conflict do nothing;

-- claims: user = account.account_id, role = account.role, basket = basket.basket_id
-- invalid: /login
-- redirect: :next else /account
