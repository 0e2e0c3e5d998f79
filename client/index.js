'use strict';

exports.createClient = require('openapi-fetch').default;
