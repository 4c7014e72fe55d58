-- name: topics :many
select t.id, t.slug, t.name, t.summary, count(*) as articles
from topic t join article_topic x on x.topic_id = t.id
group by t.id order by t.name;
