'use strict';

exports.createOperatorClient = require('openapi-fetch').default;
