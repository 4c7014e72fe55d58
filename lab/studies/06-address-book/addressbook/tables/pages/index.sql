-- param: name text = ''
-- name: entries :many
select id, first, last, city from entries
where first || ' ' || last like '%' || :name || '%'
order by last, first, id;
