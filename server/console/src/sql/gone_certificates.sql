delete from certificate
where names not in (select c.value ->> 'names' from json_each(:certificates) c)
