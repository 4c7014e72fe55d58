-- name: tags :many
select t.name, count(*) as posts
from tag t join post_tag x on x.tag_id = t.id join post p on p.id = x.post_id
where p.is_public group by t.id, t.name order by lower(t.name), t.id;
