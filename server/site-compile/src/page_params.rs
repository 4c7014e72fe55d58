//! `params` in a template: the page's declared parameters, which are all part of its key.

use std::sync::Arc;

use millpond_db as db;
use minijinja::value::{Enumerator, Object, Value};

use crate::object::template_value;
use millpond_site_format::params::Param;

/// The parameters with their values, in the order in which the page declares them.
#[derive(Debug)]
pub struct PageParams(Vec<PageParam>);

#[derive(Debug)]
struct PageParam {
    name: String,
    value: Value,
    default: Option<Value>,
    /// True if it is a part of the path, or given by the server: no query string has it.
    is_in_path: bool,
}

impl PageParams {
    pub fn new(params: &[Param], values: &[db::Value]) -> Self {
        let params = params.iter().zip(values).map(|(param, value)| PageParam {
            name: param.name.clone(),
            value: template_value(value),
            default: param.default.as_ref().map(template_value),
            is_in_path: param.in_path.is_some() || param.today.is_some(),
        });
        Self(params.collect())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|param| param.name.as_str())
    }

    /// Returns the values of the parameters that stand in the query string: those that are no part
    /// of the path.
    pub fn in_query(&self) -> Vec<(String, Value)> {
        let params = self.0.iter().filter(|param| !param.is_in_path);
        params
            .map(|param| (param.name.clone(), param.value.clone()))
            .collect()
    }

    /// True if a parameter is a part of the path; none if there is no such parameter.
    pub fn is_in_path(&self, name: &str) -> Option<bool> {
        self.find(name).map(|param| param.is_in_path)
    }

    pub fn default_of(&self, name: &str) -> Option<&Value> {
        self.find(name)?.default.as_ref()
    }

    fn find(&self, name: &str) -> Option<&PageParam> {
        self.0.iter().find(|param| param.name == name)
    }
}

impl Object for PageParams {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.find(key).map(|param| param.value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.names().map(Value::from).collect())
    }
}
