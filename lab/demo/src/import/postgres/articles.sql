analyze in_topic, in_article, in_author, in_about, in_related, in_comment, in_thread;

-- A summary may have been written by hand meanwhile; an import that has none leaves it.
update topic t set summary = i.summary
from in_topic i where i.slug = t.slug and i.summary <> '' and i.summary <> t.summary;

insert into topic (slug, name, summary)
select slug, name, summary from in_topic i
where not exists (select from topic t where t.slug = i.slug) order by n;

insert into author (slug, name)
select slug, name from (
  select distinct on (slug) slug, name, article::integer as article, n from in_author order by slug, article::integer, n
) i
where not exists (select from author u where u.slug = i.slug) order by article, n;

with written as (
  update article a set
    title = i.title, summary = i.summary, published_at = i.published_at, words = i.words::integer,
    version = i.version, license = i.license, repository = i.repository,
    body_html = i.body_html, body_text = i.body_text
  from in_article i
  where i.slug = a.slug and
    (a.title, a.summary, a.published_at, a.words, a.version, a.license, a.repository, a.body_html, a.body_text)
    is distinct from
    (i.title, i.summary, i.published_at, i.words::integer, i.version, i.license, i.repository, i.body_html, i.body_text)
  returning 1
)
select count(*) from written;

-- Articles are numbered from 50,000,001 on.
with written as (
  insert into article
    (id, slug, title, summary, published_at, words, version, license, repository, body_html, body_text)
  select
    (select coalesce(max(id), 50000000) from article where id > 50000000) + row_number() over (order by n),
    slug, title, summary, published_at, words::integer, version, license, repository, body_html, body_text
  from in_article i
  where not exists (select from article a where a.slug = i.slug) order by n
  returning 1
)
select count(*) from written;

create temp table ids on commit drop as
select i.n as article, a.id from in_article i join article a on a.slug = i.slug;

analyze ids;
