delete from fact
where (topic, name) not in (select f.value ->> 0, f.value ->> 1 from json_each(:facts) f)
