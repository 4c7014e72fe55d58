-- param: id integer

-- name: asked :one
select id, at, host, target, json(body) as it from explained where id = :id;
